"""rung: a typed context runtime for LLM agents."""
