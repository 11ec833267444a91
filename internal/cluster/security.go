package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// components are the parts of weed that have a certificate of their own.
var components = []string{"client", "master", "volume", "filer", "s3", "admin", "worker", "mq", "msg_broker", "msg_agent"}

// secure writes security.toml into dir, for the servers and for clients. Empty,
// it still keeps weed from picking up another one.
func secure(dir string, o Options) (string, error) {
	var b strings.Builder
	b.WriteString("# of a test cluster\n")
	if o.TLS {
		ca, err := authority(dir)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "[grpc]\nca = %q\n", filepath.Join(dir, "ca.crt"))
		for i, c := range components {
			if err := ca.issue(dir, c, int64(i+2)); err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "[grpc.%s]\ncert = %q\nkey = %q\n", c, filepath.Join(dir, c+".crt"), filepath.Join(dir, c+".key"))
		}
	}
	if o.JWT {
		for _, table := range []string{"jwt.signing", "jwt.signing.read", "jwt.filer_signing", "jwt.filer_signing.read"} {
			key := make([]byte, 16)
			_, _ = rand.Read(key)
			fmt.Fprintf(&b, "[%s]\nkey = %q\nexpires_after_seconds = 10\n", table, hex.EncodeToString(key))
		}
	}
	file := filepath.Join(dir, "security.toml")
	return file, os.WriteFile(file, []byte(b.String()), 0o600)
}

type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// validity of the certificates; a cluster lives minutes.
func validity() (from, to time.Time) {
	now := time.Now()
	return now.Add(-time.Hour), now.Add(48 * time.Hour)
}

func authority(dir string) (*issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	from, to := validity()
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Seaice test authority"},
		NotBefore: from, NotAfter: to, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &issuer{cert, key}, writePEM(filepath.Join(dir, "ca.crt"), "CERTIFICATE", der)
}

// issue writes a certificate with which a component can serve and call.
func (a *issuer) issue(dir, name string, serial int64) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	from, to := validity()
	t := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: to,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, name+".crt"), "CERTIFICATE", der); err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, name+".key"), "PRIVATE KEY", secret)
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
