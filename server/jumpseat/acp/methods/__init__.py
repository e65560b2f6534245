"""The methods of ACP, one file per method or small namespace. They only translate."""
