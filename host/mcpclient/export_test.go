package mcpclient

import "time"

// LogRate and LogBurst are how many lines a second, and at once, are logged of what one server says.
const LogRate, LogBurst = logRate, logBurst

// WithOutage shortens how long what a server offered outlives it.
func WithOutage(d time.Duration) func(*Options) {
	return func(o *Options) { o.outage = d }
}
