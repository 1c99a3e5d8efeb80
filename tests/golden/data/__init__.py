"""Data directories that earlier versions wrote, and what a broker of this version must still find in them."""
