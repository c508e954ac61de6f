package mcpserver

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/host/mcpserver/limits"
	"github.com/hako-run/hako/internal/strictjson"
)

// readBody reads a message, or answers what is too large or incomplete and returns false.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.now().Limits.Message))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			http.Error(w, fmt.Sprintf("The message is larger than %d bytes.", s.now().Limits.Message),
				http.StatusRequestEntityTooLarge)
			s.options.Observer.RequestRefused(RefusedSize)
			return nil, false
		}
		http.Error(w, "The message did not arrive whole.", http.StatusBadRequest)
		s.options.Observer.RequestRefused(RefusedInvalid)
		return nil, false
	}
	return body, true
}

// decodeName decodes the Mcp-Name header, which holds names beyond printable ASCII in Base64 (MCP 2026-07-28,
// transports, standard headers).
func decodeName(h http.Header) error {
	const prefix, suffix = "=?base64?", "?="
	name := h.Get("Mcp-Name")
	if len(name) < len(prefix)+len(suffix) || !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, suffix) {
		return nil
	}
	decoded, err := base64.StdEncoding.DecodeString(name[len(prefix) : len(name)-len(suffix)])
	if err != nil {
		return errors.New("header mismatch: Mcp-Name holds invalid Base64")
	}
	h.Set("Mcp-Name", string(decoded))
	return nil
}

// envelope is what tells JSON-RPC messages apart. It is empty for a batch.
type envelope struct {
	ID     any    `json:"id"`
	Method string `json:"method"`
}

func envelopeOf(body []byte) (e envelope) {
	if strictjson.Unmarshal(body, &e) != nil {
		return envelope{}
	}
	return e
}

func (e envelope) id() jsonrpc.ID {
	id, err := jsonrpc.MakeID(e.ID)
	if err != nil {
		return jsonrpc.ID{}
	}
	return id
}

// refuse answers a request that has met a limit, for one of RefusalReasons.
func (s *Server) refuse(w http.ResponseWriter, reason string, err error) {
	s.options.Observer.RequestRefused(reason)
	refuse(w, err)
}

// refuse answers a request that has met a limit.
func refuse(w http.ResponseWriter, err error) {
	status, retry := http.StatusTooManyRequests, time.Second
	if busy, ok := errors.AsType[*limits.BusyError](err); ok {
		retry = busy.Retry
		if busy.Everyone {
			status = http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(retry.Seconds())))))
	writeError(w, status, jsonrpc.ID{}, codeBusy, err.Error())
}

func writeError(w http.ResponseWriter, status int, id jsonrpc.ID, code int64, text string) {
	data, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: code, Message: text}})
	if err != nil {
		http.Error(w, internalText, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that has gone misses nothing
}
