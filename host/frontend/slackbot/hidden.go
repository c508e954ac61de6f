package slackbot

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hako-run/hako/internal/visible"
)

// markHidden marks the hidden characters in all texts of a request to the Web API: those of models, plugins, servers,
// people and file names. All requests pass here, so no message, card, button, form or notice is missed. The length of a
// text does not change.
func markHidden(r *http.Request, method string) error {
	if r.Body == nil || method == "file" {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = r.Body.Close()
	}
	if err != nil {
		return err
	}
	mark := visible.Mark
	if strings.HasSuffix(method, "Stream") {
		mark = visible.Piece
	}
	switch kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind {
	case "application/json":
		body = showJSON(body, mark)
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return err
		}
		for name, values := range form {
			for i, value := range values {
				if slices.Contains(documents, name) {
					values[i] = string(showJSON([]byte(value), mark))
				} else {
					values[i] = mark(value)
				}
			}
		}
		body = []byte(form.Encode())
	}
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, err = r.GetBody()
	return err
}

// documents are the form arguments of the Web API that contain JSON.
var documents = []string{"attachments", "blocks", "chunks", "files", "metadata", "view"}

// showJSON marks the hidden characters in the strings of a JSON document of the bot.
func showJSON(document []byte, mark func(string) string) []byte {
	var out bytes.Buffer
	in, encoder := jsontext.NewDecoder(bytes.NewReader(document)), jsontext.NewEncoder(&out)
	for {
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSpace(out.Bytes())
		}
		if err == nil && token.Kind() == '"' {
			token = jsontext.String(mark(token.String()))
		}
		if err != nil || encoder.WriteToken(token) != nil {
			return []byte(mark(string(document)))
		}
	}
}
