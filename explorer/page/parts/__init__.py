"""What panels are made of: widgets and arrays that know no session."""
