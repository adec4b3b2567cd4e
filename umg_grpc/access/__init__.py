"""Who calls, and what that caller may do: keys, their check at each call, permissions, limits."""
