package extism

import (
	"context"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

// userFunctions are the host functions of hyper-mcp. Requests to the client are declined or not available.
func (a *Adapter) userFunctions() []broker.Function {
	accept := func(name string, params []broker.Type) broker.Function {
		return a.function(name, params, nil, func(context.Context, *session, []uint64) uint64 { return 0 })
	}
	return []broker.Function{
		accept("notify_tool_list_changed", none),
		accept("notify_prompt_list_changed", none),
		accept("notify_resource_list_changed", none),
		accept("notify_url_elicitation_completed", one),
		a.function("notify_logging_message", one, nil, func(_ context.Context, s *session, p []uint64) uint64 {
			s.logMessage(p[0])
			return 0
		}),
		a.function("notify_resource_updated", one, nil, func(_ context.Context, s *session, p []uint64) uint64 {
			s.resourceUpdated(p[0])
			return 0
		}),
		a.function("notify_progress", one, nil, func(_ context.Context, s *session, p []uint64) uint64 {
			s.reportProgress(p[0])
			return 0
		}),
		a.function("create_elicitation", one, &i64, func(_ context.Context, s *session, _ []uint64) uint64 {
			return s.writeJSON(map[string]string{"action": "decline"})
		}),
		a.function("list_roots", none, &i64, func(_ context.Context, s *session, _ []uint64) uint64 {
			return s.writeJSON(map[string][]string{"roots": {}})
		}),
		a.function("create_message", one, &i64, func(_ context.Context, s *session, _ []uint64) uint64 {
			panic(&abi.Error{Code: abi.CodeNotGranted,
				Message: "plugin " + s.call.Plugin +
					" asks the client's model (create_message), which is not available to plugins"})
		}),
	}
}

// messageLevels are MCP's levels of log messages.
var messageLevels = map[string]abi.LogLevel{
	"debug": abi.LogDebug, "info": abi.LogInfo, "notice": abi.LogInfo, "warning": abi.LogWarn,
	"error": abi.LogError, "critical": abi.LogError, "alert": abi.LogError, "emergency": abi.LogError,
}

func (s *session) logMessage(offset uint64) {
	var message struct {
		Level string `json:"level"`
		Data  any    `json:"data"`
	}
	s.decode("notify_logging_message", offset, &message)
	text, ok := message.Data.(string)
	if !ok {
		text = string(s.kernel.bytes("notify_logging_message", offset))
	}
	s.guest.Log(messageLevels[message.Level], text)
}

func (s *session) resourceUpdated(offset uint64) {
	var update struct {
		URI string `json:"uri"`
	}
	s.decode("notify_resource_updated", offset, &update)
	s.guest.NotifyUpdated(update.URI)
}

// reportProgress reports progress whatever the token: a call has only one.
func (s *session) reportProgress(offset uint64) {
	var report struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total"`
		Message  string  `json:"message"`
	}
	s.decode("notify_progress", offset, &report)
	s.guest.ReportProgress(abi.Progress{Progress: report.Progress, Total: report.Total, Message: report.Message})
}
