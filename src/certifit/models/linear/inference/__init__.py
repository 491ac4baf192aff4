"""What fits without a penalty know of themselves: standard errors, tests, leverage, each row left out."""
