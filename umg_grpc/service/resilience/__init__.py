"""Protection of the process and of its channels: circuit breakers, concurrency limits, retry budgets, load shedding."""
