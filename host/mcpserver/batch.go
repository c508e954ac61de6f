package mcpserver

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/internal/strictjson"
)

// maxBatch is the most messages of a JSON-RPC batch.
const maxBatch = 100

const (
	noBatches = "The body is a JSON-RPC batch, which MCP has up to version 2025-03-26 only: send each message in a request of its own."
	noMessage = "is no JSON-RPC 2.0 message: that is an object with 'jsonrpc': '2.0' and either a method, or an id and a result or an error, " +
		"nested 1,000 deep at most"
)

// messageSize is what a body counts for.
type messageSize struct {
	// messages are all, calls those of them that are requests.
	messages, calls int
	batch           bool
	// wrong is what is wrong with the method of the message, or of one in the batch.
	wrong *messageError
	// ignored says that the message is a notification that means nothing to the server.
	ignored bool
}

// plainSize is that of a plainCall.
var plainSize = messageSize{messages: 1, calls: 1}

// messageError says why a body is refused.
type messageError struct {
	id   jsonrpc.ID
	code int64
	text string
}

// checkMessages measures a body, or answers it and returns false if it is no JSON-RPC message and no batch of them.
func (s *Server) checkMessages(w http.ResponseWriter, r *http.Request, body []byte) (messageSize, bool) {
	size, refused := measure(body)
	if refused == nil && size.batch && isSessionless(r) {
		refused = &messageError{code: jsonrpc.CodeInvalidRequest, text: noBatches}
	}
	if refused != nil {
		s.refuseMessage(w, refused.id, refused.code, refused.text)
		return messageSize{}, false
	}
	return size, true
}

// refuseMessage answers a body that breaks a rule of JSON or JSON-RPC.
func (s *Server) refuseMessage(w http.ResponseWriter, id jsonrpc.ID, code int64, text string) {
	s.options.Observer.RequestRefused(RefusedInvalid)
	writeError(w, http.StatusBadRequest, id, code, text)
}

func measure(body []byte) (messageSize, *messageError) {
	if err := strictjson.Check(body); err != nil {
		return messageSize{}, &messageError{code: jsonrpc.CodeParseError, text: "The message is not valid JSON: " +
			err.Error() + "."}
	}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		message, err := jsonrpc.DecodeMessage(body)
		if err != nil {
			return messageSize{}, &messageError{envelopeOf(body).id(), jsonrpc.CodeInvalidRequest,
				"The body " + noMessage + "."}
		}
		size := messageSize{messages: 1, wrong: checkMethod(message), ignored: isUnknownNotification(message)}
		if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
			size.calls = 1
		}
		return size, nil
	}
	size, text := measureBatch(body)
	if text != "" {
		return messageSize{}, &messageError{code: jsonrpc.CodeInvalidRequest,
			text: "The batch is refused, and nothing of it was done: " + text + "."}
	}
	return size, nil
}

// measureBatch counts the messages of a batch, or says what is wrong with it.
func measureBatch(body []byte) (size messageSize, text string) {
	size.batch = true
	ids := map[jsonrpc.ID]bool{}
	batch := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	_, _ = batch.ReadToken() // its bracket: strictjson has read all of it
	for batch.PeekKind() != ']' {
		if size.messages++; size.messages > maxBatch {
			return size, fmt.Sprintf("it has more than %d messages: send fewer at once", maxBatch)
		}
		data, err := batch.ReadValue()
		if err != nil {
			return size, err.Error()
		}
		message, err := jsonrpc.DecodeMessage(data)
		if err != nil {
			return size, fmt.Sprintf("part %d %s", size.messages, noMessage)
		}
		if wrong := checkMethod(message); wrong != nil && size.wrong == nil {
			text := fmt.Sprintf("The batch is refused, and nothing of it was done: part %d: %s.", size.messages,
				wrong.text)
			size.wrong = &messageError{code: wrong.code, text: text}
		}
		request, ok := message.(*jsonrpc.Request)
		if !ok || !request.IsCall() {
			continue
		}
		size.calls++
		switch {
		case ids[request.ID]:
			return size, fmt.Sprintf("the id of part %d is that of an earlier one: give each request its own",
				size.messages)
		case request.Method == "initialize" || request.Method == methodListen:
			return size, fmt.Sprintf("part %d is %q, which must be sent alone", size.messages, request.Method)
		}
		ids[request.ID] = true
	}
	if size.messages == 0 {
		return size, "it is empty"
	}
	return size, ""
}

// takesBatches reports whether the session is of a version that has batches, and the header does not say otherwise.
func (s *session) takesBatches(h http.Header) bool {
	version := h.Get("Mcp-Protocol-Version")
	return withBatches[s.version] && (version == "" || withBatches[version])
}

var withBatches = map[string]bool{"2024-11-05": true, "2025-03-26": true}
