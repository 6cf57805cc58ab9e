"""The latency meter: an echo server beside the application, and a client at the user's side that measures and
publishes round trips. It shares the message and the broker's border with the controller (`reactor.signals`)."""
