"""Models on a kernel: any loss through the representer theorem."""
