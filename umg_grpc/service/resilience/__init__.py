"""Protection of the process and its channels: circuit breakers, concurrency limits, retry budgets, load shedding."""
