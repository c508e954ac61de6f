// Package sealed encrypts data for the host's store under random IDs that the store does not have. Seal binds data to
// an ID and a place, and Open opens it for the same ones.
package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
)

// ErrSealed means that data was not sealed under this ID, or not for this place.
var ErrSealed = errors.New("it was not sealed under this ID for this place")

// Seal encrypts data, so that only who knows the ID can read it. The result is bound to its place: who writes to the
// store cannot move it to another one. The ID must be random and long enough not to be guessed.
func Seal(id, place string, data []byte) []byte {
	aead := sealer(id)
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(data)+aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(nonce, nonce, data, []byte(place))
}

// Open returns what was given to Seal with this ID and place. The error matches ErrSealed.
func Open(id, place string, sealed []byte) ([]byte, error) {
	aead := sealer(id)
	if len(sealed) < aead.NonceSize() {
		return nil, ErrSealed
	}
	data, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], []byte(place))
	if err != nil {
		return nil, ErrSealed
	}
	return data, nil
}

// sealer has a key that cannot be derived from a digest of the ID.
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
