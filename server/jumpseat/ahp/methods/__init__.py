"""The methods of the protocol. Plain functions run in the order of arrival, coroutines as tasks."""
