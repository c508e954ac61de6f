package sessionstore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// errSealed says that what is in the store was not sealed under this ID, or not for this place.
var errSealed = errors.New("it was not sealed for this place of this session or call")

// EventPlace is the place of an event on a stream.
func EventPlace(stream string, number int) string {
	return fmt.Sprintf("event %d of %s", number, stream)
}

// MailPlace is the place of the body of a mail. The ID is empty for mail that gets its ID when it is sent.
func MailPlace(kind, id string) string { return fmt.Sprintf("mail %q %s", kind, id) }

// Seal makes of contents what may lie in the store: only who knows the ID can read it, which clients and the replicas
// that serve them do. The store knows the ID's Key. The contents are bound to their place: who writes to the store
// cannot move them to another one.
func Seal(id, place string, data []byte) string {
	aead := sealer(id)
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(data)+aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return base64.RawStdEncoding.EncodeToString(aead.Seal(nonce, nonce, data, []byte(place)))
}

// Unseal returns what was given to Seal with this ID and place.
func Unseal(id, place, sealed string) ([]byte, error) {
	data, err := base64.RawStdEncoding.DecodeString(sealed)
	aead := sealer(id)
	if err != nil || len(data) < aead.NonceSize() {
		return nil, errSealed
	}
	if data, err = aead.Open(nil, data[:aead.NonceSize()], data[aead.NonceSize():], []byte(place)); err != nil {
		return nil, errSealed
	}
	return data, nil
}

// sealer has a key that the ID's Key does not tell.
func sealer(id string) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, []byte(id), nil, "hako mcp contents", 32)
	if err != nil {
		panic(err) // only a longer key would be an error
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // it has the length of one
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the right block
	}
	return aead
}
