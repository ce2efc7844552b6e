"""The public REST interface: routes by noun over ops."""
