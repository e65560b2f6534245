"""Setting jumpseat up from inside."""
