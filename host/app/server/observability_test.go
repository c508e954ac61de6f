package server

import (
	"testing"

	"github.com/hako-run/hako/host/app/config"
)

// TestWantsTraces holds the variables of OpenTelemetry against the configuration.
func TestWantsTraces(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		endpoint string
		env      map[string]string
		want     bool
	}{
		"nothing":    {},
		"configured": {endpoint: "http://localhost:4318", want: true},
		"a variable": {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"},
			want: true},
		"a variable for traces": {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:4318/x"}, want: true},
		"turned off": {endpoint: "http://localhost:4318",
			env: map[string]string{"OTEL_SDK_DISABLED": "TRUE"}},
		"turned off for traces alone": {endpoint: "http://localhost:4318",
			env: map[string]string{"OTEL_TRACES_EXPORTER": "none"}},
	} {
		c := &config.Config{Traces: config.Traces{Endpoint: test.endpoint}}
		if got := wantsTraces(c, func(name string) string { return test.env[name] }); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
