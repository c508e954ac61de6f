package slack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
)

// file is one that was uploaded.
type file struct {
	name, kind, url string
	data            []byte
	channel, thread string
}

// describe returns a file as events describe it.
func (f *file) describe(id string) map[string]any {
	return map[string]any{"id": id, "name": f.name, "mimetype": f.kind, "size": len(f.data),
		"url_private_download": f.url + "/files/" + id}
}

// AddFile puts a file there that messages can bring along, and returns its identifier. url is the server's own.
func (s *Server) AddFile(url, name, mimeType string, data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(&file{name: name, kind: mimeType, url: url, data: data})
}

func (s *Server) add(f *file) string {
	id := fmt.Sprintf("F%010d", len(s.files)+1)
	s.files[id] = f
	return id
}

// Upload is a file that the bot has put into a thread.
type Upload struct {
	Name, Channel, Thread string
	Data                  []byte
}

// Uploads returns those that were completed.
func (s *Server) Uploads() []Upload {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Upload
	for _, f := range s.files {
		if f.channel != "" {
			list = append(list, Upload{f.name, f.channel, f.thread, f.data})
		}
	}
	return list
}

func (s *Server) uploadURL(c *call) (answer, error) {
	if c.text("filename") == "" || c.text("length") == "" {
		return nil, refuse("invalid_arguments")
	}
	id := s.add(&file{name: c.text("filename")})
	return answer{"upload_url": c.base + "/files/" + id, "file_id": id}, nil
}

func (s *Server) completeUpload(c *call) (answer, error) {
	var list []struct{ ID string }
	if json.Unmarshal([]byte(c.text("files")), &list) != nil || len(list) != 1 || s.files[list[0].ID] == nil {
		return nil, refuse("invalid_arguments")
	}
	f := s.files[list[0].ID]
	f.channel, f.thread = c.text("channel_id"), c.text("thread_ts")
	s.messages = append(s.messages, Message{
		Channel: f.channel, Thread: f.thread, Author: c.bot, TS: s.timestamp(), Text: c.text("initial_comment"),
		Files: []string{list[0].ID},
	})
	return answer{"files": []any{map[string]string{"id": list[0].ID, "title": f.name}}}, nil
}

// serveFile takes an upload, or gives a file to a bot with its token.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f, known := s.files[path.Base(r.URL.Path)], s.tokens[fakehttp.Bearer(r)] != nil
	s.mu.Unlock()
	switch {
	case f == nil:
		http.NotFound(w, r)
	case r.Method == "POST":
		part, _, err := r.FormFile("file")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		data, err := io.ReadAll(io.LimitReader(part, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		f.data = data
		s.mu.Unlock()
	case !known:
		http.Error(w, "sign in", http.StatusForbidden)
	default:
		_, _ = w.Write(f.data)
	}
}
