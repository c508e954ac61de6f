package mcpserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
)

// readBody reads a message. If it is too large or incomplete, readBody answers with an error and returns false.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := readAll(http.MaxBytesReader(w, r.Body, s.now().Limits.Message),
		min(r.ContentLength, s.now().Limits.Message))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			http.Error(w, fmt.Sprintf("The message is larger than %d bytes.", s.now().Limits.Message),
				http.StatusRequestEntityTooLarge)
			s.options.Observer.RequestRefused(refusedSize)
			return nil, false
		}
		http.Error(w, "The message is incomplete.", http.StatusBadRequest)
		s.options.Observer.RequestRefused(refusedInvalid)
		return nil, false
	}
	return body, true
}

// readAll reads r. It reserves memory for size bytes only when an eighth of them has arrived: a client must not make
// the server reserve memory with a header alone.
func readAll(r io.Reader, size int64) ([]byte, error) {
	var body bytes.Buffer
	_, err := io.CopyN(&body, r, max(size/8, bytes.MinRead))
	if err == nil {
		body.Grow(max(0, int(size)-body.Len()) + bytes.MinRead)
		_, err = body.ReadFrom(r)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return body.Bytes(), err
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

// refuseMessage answers a body that breaks a rule of JSON or JSON-RPC.
func (s *Server) refuseMessage(w http.ResponseWriter, why *transport.Refusal) {
	s.options.Observer.RequestRefused(refusedInvalid)
	writeError(w, http.StatusBadRequest, why.ID, why.Code, why.Text)
}

func writeError(w http.ResponseWriter, status int, id jsonrpc.ID, code int64, text string) {
	writeErrorOf(w, status, id, &jsonrpc.Error{Code: code, Message: text})
}

func writeErrorOf(w http.ResponseWriter, status int, id jsonrpc.ID, wire *jsonrpc.Error) {
	data, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: wire})
	if err != nil {
		http.Error(w, internalText, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that has gone misses nothing
}
