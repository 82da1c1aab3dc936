"""What leaves a page and comes to it: links, files, films, code, and the game of two."""
