package mcpclient

import "time"

// WithOutage shortens how long what a server offered outlives it.
func WithOutage(d time.Duration) func(*Options) {
	return func(o *Options) { o.outage = d }
}
