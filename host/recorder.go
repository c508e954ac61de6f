package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/internal/wholefile"
)

// recorder collects a plugin's HTTP exchanges, with the time of the first, and writes them to a file on Close.
type recorder struct {
	path string
	now  func() time.Time

	mu         sync.Mutex
	recordings httpbroker.Recordings // guarded by mu
}

func (r *recorder) add(exchange httpbroker.Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.recordings.Exchanges) == 0 {
		r.recordings.Clock = r.now()
	}
	r.recordings.Exchanges = append(r.recordings.Exchanges, exchange)
}

// Close writes the file, unless there were no exchanges.
func (r *recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.recordings.Exchanges) == 0 {
		return nil
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(&r.recordings); err != nil {
		return fmt.Errorf("encode the recordings: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(r.path), 0o755); err != nil {
		return fmt.Errorf("write the recordings: %w", err)
	}
	return wholefile.Write(r.path, buffer.Bytes())
}
