"""The processes of a deployment: API, router, nodes, launcher. Importing the package imports none of them."""
