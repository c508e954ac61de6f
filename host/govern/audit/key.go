package audit

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hako-run/hako/internal/wholefile"
)

// key signs checkpoints and authenticates the head.
type key struct {
	private ed25519.PrivateKey
	public  ed25519.PublicKey
	mac     []byte // authenticates the head
	digest  []byte // keys Log.Digest
}

// openKey reads the log's key. If there is none and create is set, it creates one.
func openKey(dir string, create bool) (*key, error) {
	path := filepath.Join(dir, keyName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if !create {
			return nil, fmt.Errorf("the key %s is missing, so records cannot be signed: restore it, or move the "+
				"whole directory away to start a new log", path)
		}
		return createKey(dir)
	}
	if err != nil {
		return nil, err
	}
	k, err := parseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// parseKey parses a key in the form of its file. The error does not contain the key.
func parseKey(text string) (*key, error) {
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("the key is not %d bytes in base64, as openssl rand -base64 %d prints them",
			ed25519.SeedSize, ed25519.SeedSize)
	}
	return newKey(seed), nil
}

func createKey(dir string) (*key, error) {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails
	k := newKey(seed)
	if err := wholefile.WriteDurable(filepath.Join(dir, publicName), []byte(k.publicText()+"\n"), 0o644); err != nil {
		return nil, err
	}
	private := []byte(base64.StdEncoding.EncodeToString(seed) + "\n")
	return k, wholefile.WriteDurable(filepath.Join(dir, keyName), private, 0o600)
}

func newKey(seed []byte) *key {
	private := ed25519.NewKeyFromSeed(seed)
	return &key{
		private: private, public: private.Public().(ed25519.PublicKey),
		mac: authenticate(seed, []byte("hako audit head")), digest: authenticate(seed, []byte("hako audit digest")),
	}
}

func authenticate(key, data []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(data)
	return mac.Sum(nil)
}

// Digest returns a keyed digest of data for a record, HMAC-SHA256 (RFC 2104). Equal data has equal digests. Nobody
// without the log's key can guess the data by trying.
func (l *Log) Digest(data []byte) string {
	return "hmac-sha256:" + hex.EncodeToString(authenticate(l.key.digest, data))
}

// publicText returns the public key in the form of audit.pub.
func (k *key) publicText() string { return formatPublicKey(k.public) }

func formatPublicKey(public ed25519.PublicKey) string {
	return "ed25519:" + base64.StdEncoding.EncodeToString(public)
}

// checkpoint returns the event of a signed checkpoint with the time t, which must be the next record after c.
func (k *key) checkpoint(c chain, t time.Time) *Event {
	signature := ed25519.Sign(k.private, signed(c.seq+1, c.head(), t))
	return &Event{Time: t, Type: TypeCheckpoint, Checkpoint: &Checkpoint{Key: k.publicText(), Signature: signature}}
}

// signed returns the text that a checkpoint signs.
func signed(seq uint64, hash string, t time.Time) []byte {
	return []byte("hako audit checkpoint\n" + strconv.FormatUint(seq, 10) + "\n" + hash + "\n" +
		t.UTC().Format(time.RFC3339Nano) + "\n")
}

// parsePublicKey parses a public key in the form of audit.pub.
func parsePublicKey(text string) (ed25519.PublicKey, error) {
	encoded, ok := strings.CutPrefix(strings.TrimSpace(text), "ed25519:")
	public, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(public) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%.40q is not the public key of an audit log, which begins with \"ed25519:\"", text)
	}
	return public, nil
}

// head is the end of the log.
type head struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
	MAC  string `json:"mac"`

	forged bool // it exists but was not written with the log's key
}

// headSize is the size of the file, which is overwritten in place by one write.
const headSize = 256

func (k *key) authenticate(seq uint64, hash string) string {
	return hex.EncodeToString(authenticate(k.mac, []byte(strconv.FormatUint(seq, 10)+"\n"+hash)))
}

// wrote reports whether the head was written with the key.
func (k *key) wrote(h head) bool {
	return hmac.Equal([]byte(h.MAC), []byte(k.authenticate(h.Seq, h.Hash)))
}

func writeHead(file *os.File, c chain, k *key) error {
	text := fmt.Appendf(nil, `{"seq":%d,"hash":"%s","mac":"%s"}`, c.seq, c.hash, k.authenticate(c.seq, c.hash))
	for len(text) < headSize-1 {
		text = append(text, ' ')
	}
	_, err := file.WriteAt(append(text, '\n'), 0)
	return err
}

// readHead reads the head of the log in dir.
func readHead(dir string, k *key) (head, error) {
	text, err := os.ReadFile(filepath.Join(dir, headName))
	if err != nil {
		return head{}, err
	}
	if len(text) == 0 {
		return head{}, fs.ErrNotExist // another process has created the log and not written yet
	}
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return head{}, fmt.Errorf("%s: %w", headName, err)
	}
	if !k.wrote(h) {
		return head{}, fmt.Errorf("%s was not written with the log's key", headName)
	}
	return h, nil
}
