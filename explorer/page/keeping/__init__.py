"""What a browser keeps of its page, and gives back."""
