package trace

// Key is the name of an attribute.
type Key string

// Attributes of the semantic conventions of OpenTelemetry: general, HTTP, database, GenAI and MCP.
const (
	ErrorType Key = "error.type"
	Method    Key = "mcp.method.name"
	// as records have it: the beginning alone, for the whole of it would let who reads it use the session
	Session            Key = "mcp.session.id"
	RequestID          Key = "jsonrpc.request.id"
	Tool               Key = "gen_ai.tool.name"
	Prompt             Key = "gen_ai.prompt.name"
	Operation          Key = "gen_ai.operation.name"
	Provider           Key = "gen_ai.provider.name"
	RequestModel       Key = "gen_ai.request.model"
	ResponseModel      Key = "gen_ai.response.model"
	InputTokens        Key = "gen_ai.usage.input_tokens"
	OutputTokens       Key = "gen_ai.usage.output_tokens"
	Conversation       Key = "gen_ai.conversation.id"
	NetworkTransport   Key = "network.transport"
	ServerAddress      Key = "server.address"
	HTTPMethod         Key = "http.request.method"
	HTTPStatus         Key = "http.response.status_code"
	HTTPResends        Key = "http.request.resend_count"
	DatabaseSystem     Key = "db.system.name"
	DatabaseOperation  Key = "db.operation.name"
	Messaging          Key = "messaging.system"
	MessagingOperation Key = "messaging.operation.name"
)

// Attributes defined by hako.
const (
	Frontend Key = "hako.frontend"
	Tenant   Key = "hako.tenant"
	Plugin   Key = "hako.plugin"
	Outcome  Key = "hako.outcome"
	Steps    Key = "hako.steps"
	Input    Key = "hako.input.bytes"
	Output   Key = "hako.output.bytes"
	Action   Key = "hako.policy.action"
	Rule     Key = "hako.rule"
	Question Key = "hako.approval.id"
	Call     Key = "hako.call.id"
	Source   Key = "hako.http.source"
	Program  Key = "hako.program"
	Rounds   Key = "hako.chat.rounds"
	Calls    Key = "hako.chat.calls"
	Attempts Key = "hako.attempts"
)

// Values of Operation.
const (
	ExecuteTool = "execute_tool"
	InvokeAgent = "invoke_agent"
	Chat        = "chat"
)
