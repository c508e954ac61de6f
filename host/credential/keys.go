package credential

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/hako-run/hako/host/secret"
)

// keySize is the length of an AES-256 key in bytes.
const keySize = 32

// key encrypts records with AES-256-GCM under a random nonce.
type key struct {
	// id identifies the key. It is a hash of the key and not secret.
	id   string
	text string // as written in the source
	aead cipher.AEAD
}

// parseKey parses a key of 32 bytes in either alphabet of base64. The error does not contain the key.
func parseKey(text string) (key, error) {
	plain := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(text), "=")
	raw, err := base64.RawStdEncoding.DecodeString(plain)
	if err != nil || len(raw) != keySize {
		return key{}, fmt.Errorf("it is not %d bytes in base64, as openssl rand -base64 %d prints them", keySize,
			keySize)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	sum := sha256.Sum256(append([]byte("hako key "), raw...))
	return key{id: hex.EncodeToString(sum[:6]), text: text, aead: aead}, err
}

// newKeyText returns a new key in the form of a source.
func newKeyText() string {
	raw := make([]byte, keySize)
	_, _ = rand.Read(raw) // cannot fail
	return base64.StdEncoding.EncodeToString(raw)
}

// parseKeys parses one key per line.
func parseKeys(text string) (ring []key, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		k, err := parseKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(ring)+1, err)
		}
		ring = append(ring, k)
	}
	if len(ring) == 0 {
		return nil, errors.New("it contains no key")
	}
	return ring, nil
}

// additionalData returns the additional data that binds a record to its tenant and name, so that records cannot be
// exchanged.
func (i id) additionalData() []byte {
	text, _ := json.Marshal([]string{"hako credential", i.tenant, i.name}) // marshalling strings cannot fail
	return text
}

func (k key) seal(i id, plain []byte) string {
	return base64.StdEncoding.EncodeToString(k.aead.Seal(nil, nil, plain, i.additionalData()))
}

func (k key) open(i id, sealed string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return nil, err
	}
	return k.aead.Open(nil, nil, raw, i.additionalData())
}

// keys reads the keys from their source. It is safe for concurrent use.
type keys struct {
	source secret.Source

	mu   sync.Mutex // guards ring
	ring []key
}

// errNoKey is the error for a key that the store uses and the source lacks.
var errNoKey = errors.New("the key is missing")

// find returns the key with an id. If it is not in memory, find reads the source again.
func (k *keys) find(ctx context.Context, id string) (key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for range 2 {
		for _, one := range k.ring {
			if one.id == id {
				return one, nil
			}
		}
		if err := k.load(ctx); err != nil {
			return key{}, err
		}
	}
	return key{}, fmt.Errorf("%w: connections are encrypted with the key %s, which is not in %v: add it there as "+
		"another line, "+
		"or remove the connections (hako connect remove) and connect again", errNoKey, id, k.source)
}

// all reads the source and returns its keys, the newest first.
func (k *keys) all(ctx context.Context) ([]key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ring, k.load(ctx)
}

// load reads the source. The caller holds mu.
func (k *keys) load(ctx context.Context) error {
	text, err := k.source.Read(ctx)
	if err != nil {
		return fmt.Errorf("the key of the connections: %w", err)
	}
	ring, err := parseKeys(text)
	if err != nil {
		return fmt.Errorf("the key of the connections, %v: %w", k.source, err)
	}
	k.ring = ring
	return nil
}
