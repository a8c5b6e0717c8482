"""Assembly: neutral messages, and pure functions that make a provider's request of them."""
