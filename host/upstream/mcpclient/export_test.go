package mcpclient

import "time"

// LogRate and LogBurst limit the log lines of one server: per second, and at once.
const LogRate, LogBurst = logRate, logBurst

// WithOutage shortens how long what a server offered outlives it.
func WithOutage(d time.Duration) func(*Options) {
	return func(o *Options) { o.outage = d }
}
