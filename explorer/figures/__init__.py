"""Pictures that commands write to files, one module per kind; none knows another."""
