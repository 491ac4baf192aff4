"""The same objective in another form: split variables, a ball as a penalty, the span of the rows, a kernel, target by target."""
