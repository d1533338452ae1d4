"""What is delivered to users from here: a log of results, a mailbox for each profile."""
