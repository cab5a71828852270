"""The engine: any Hugging Face causal LM over our own pages. Importing the package imports no torch."""
