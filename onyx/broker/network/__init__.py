"""What a broker knows of the network: its shape, its sources, who may do what."""
