"""The methods of ACP: one file each, or one for a small namespace. They translate, and do nothing else."""
