"""What features cost."""
