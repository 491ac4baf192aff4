"""What ONNX export refuses."""

__all__ = ["NotExportableError"]


class NotExportableError(ValueError):
    """The model, or a part of it, has no exact form in ONNX; the message names it and what can be exported."""
