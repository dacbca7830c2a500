"""The browser of tests, and the pictures it takes for the documentation."""
