"""The recommended estimators' parts: least squares heads, linear experts, their mixture, and a learned metric."""
