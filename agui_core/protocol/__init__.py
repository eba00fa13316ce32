"""What the wire says: events, messages, content, run input, outcomes, capabilities. Data only, no behaviour."""
