package config

// Traces configures the export of OpenTelemetry's traces.
type Traces struct {
	// Endpoint is the base URL of an OTLP receiver. Empty leaves it to the standard variables of OpenTelemetry.
	Endpoint string
	// Protocol is "http/protobuf" or "grpc", or empty.
	Protocol string
	// Ratio is the share of traces that is kept, or zero.
	Ratio float64
}

func (t *Traces) table() []setting {
	return []setting{
		{key: "traces.endpoint", value: &t.Endpoint},
		{key: "traces.protocol", value: &t.Protocol, oneOf: []string{"http/protobuf", "grpc"}},
		{key: "traces.ratio", value: &t.Ratio},
	}
}
