package httpbroker

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/hako-run/hako/pdk/abi"
)

// recordingKey returns the lookup key of a request: method and URL, with a sorted query without secrets.
func recordingKey(method string, t *target) string {
	key := method + " " + t.shown()
	if t.query == "" {
		return key
	}
	return key + "?" + redactQuery(t.query)
}

// replay answers r from the recordings. If several match, a call gets them in order and then repeats the last one.
// Every call starts with the first, so replays are deterministic.
func (s *session) replay(recordings recorded, note string, r *request) (*Response, error) {
	key := recordingKey(r.method, &r.target)
	contentType := r.header.Get("Content-Type")
	body := redactBody(contentType, r.body)
	var fitting []*Exchange
	for _, x := range recordings[key] {
		if want := x.Request.Body; want == "" || sameBody(redactBody(contentType, []byte(want)), body) {
			fitting = append(fitting, x)
		}
	}
	if len(fitting) == 0 {
		if note != "" {
			note = " There are: " + note
		}
		return nil, abi.Errorf(abi.CodeInvalid,
			"no recording answers %s, and while recordings are replayed (MOCK_MODE) "+
				"nothing is sent.%s "+
				"More are recorded or written into the plugin's recordings (docs/recordings.md)", key, note)
	}
	key += "\n" + string(body)
	x := fitting[min(s.replayed[key], len(fitting)-1)]
	s.replayed[key]++
	s.call.Replayed = true
	return bytesResponse(x.Response.Status, x.Response.header(), x.Response.body(), SourceRecording), nil
}

// sameBody compares bodies, as JSON if both are.
func sameBody(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errA := decodeJSON(a)
	y, errB := decodeJSON(b)
	return errA == nil && errB == nil && reflect.DeepEqual(x, y)
}

// decodeJSON decodes one value with numbers as json.Number.
func decodeJSON(data []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err = d.Decode(&v); err == nil && d.InputOffset() != int64(len(bytes.TrimRight(data, " \t\r\n"))) {
		err = errors.New("unexpected data after the value")
	}
	return v, err
}
