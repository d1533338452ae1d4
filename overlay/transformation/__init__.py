"""What the links of a broker are sent of each message (section 4.2.2 of the paper)."""
