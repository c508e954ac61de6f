package sqlbroker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Folder is the directory of the databases below the host's directory: Folder/PLUGIN/FileName(TENANT).
const Folder = "plugins"

const (
	// extension is the suffix of every database's name.
	extension = ".db"
	// noTenant is the name for callers without a tenant. Names of tenants contain no @.
	noTenant = "@default"
	// maxName is the longest encoded name, in bytes. File systems allow 255, and SQLite appends suffixes.
	maxName = 200
)

// reserved matches the device names of Windows, which are reserved with any extension.
var reserved = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)

// FileName returns the name of a tenant's database file: the tenant's name, with every byte except a-z, 0-9, "-" and
// "_" written as "%" and two hexadecimal digits. So tenants never share a file, even on case-insensitive file systems.
// In place of a name longer than 200 bytes it uses "@" and the SHA-256. The name for callers without a tenant is
// "@default".
func FileName(tenant string) string {
	if tenant == "" {
		return noTenant + extension
	}
	var b strings.Builder
	for i := range len(tenant) {
		c := tenant[i]
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_'
		if plain && !(i == 0 && reserved.MatchString(tenant)) {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02x", c)
	}
	if b.Len() > maxName {
		sum := sha256.Sum256([]byte(tenant))
		return "@" + hex.EncodeToString(sum[:]) + extension
	}
	return b.String() + extension
}

// Tenant returns the tenant of a database file. ok is false if the name is hashed or is no database.
func Tenant(file string) (tenant string, ok bool) {
	name, ok := strings.CutSuffix(file, extension)
	if !ok || name == noTenant {
		return "", ok
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		if len(name) < i+3 {
			return "", false
		}
		c, err := strconv.ParseUint(name[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		i += 2
	}
	if tenant = b.String(); FileName(tenant) != file {
		return "", false
	}
	return tenant, true
}
