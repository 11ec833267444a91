package plugin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/security"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/seaice/seaice/fault"
)

func runWorld(t *testing.T, a *admin, change func(*Options)) *world {
	t.Helper()
	w := &world{admin: a, clock: newStepClock(), result: make(chan error, 1)}
	w.client = newClient(t, a, &fakeHandler{}, w.clock, change)
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	t.Cleanup(stop)
	go func() { w.result <- w.client.Run(ctx) }()
	return w
}

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestTokenOfSecurityToml(t *testing.T) {
	a := newAdmin(t)
	a.check = func(ctx context.Context) error {
		return security.CheckGrpcAdminToken(ctx, security.SigningKey("secret"))
	}
	dir := t.TempDir()
	good := writeFile(t, dir+"/security.toml", "[jwt.filer_signing]\nkey = \"secret\"\nexpires_after_seconds = 10\n")
	w := runWorld(t, a, func(o *Options) { o.Security = good })
	w.close(w.accept(t))

	bad := writeFile(t, dir+"/other.toml", "[jwt.filer_signing]\nkey = \"another\"\n")
	w = runWorld(t, a, func(o *Options) { o.Security = bad })
	w.clock.fire(5 * time.Second)
	w.clock.fire(10 * time.Second)
	err := w.client.Status().Err
	require.Equal(t, fault.Unsupported, fault.Of(err))
	require.Contains(t, fault.Message(err), "[jwt.filer_signing]")
	w.stop()
	require.NoError(t, <-w.result)
}

// pair makes a certificate for 127.0.0.1, signed by parent or by itself.
func pair(t *testing.T, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if parent == nil {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return parsed, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})
}

func TestMutualTLSOfSecurityToml(t *testing.T) {
	ca, caKey, caPEM, _ := pair(t, nil, nil)
	_, _, serverCert, serverKey := pair(t, ca, caKey)
	_, _, clientCert, clientKey := pair(t, ca, caKey)
	dir := t.TempDir()
	for name, content := range map[string][]byte{"ca.pem": caPEM, "worker.pem": clientCert, "worker.key": clientKey} {
		writeFile(t, dir+"/"+name, string(content))
	}
	file := writeFile(t, dir+"/security.toml", "[grpc]\nca = \"ca.pem\"\n[grpc.worker]\ncert = \"worker.pem\"\nkey = \"worker.key\"\n")

	keyPair, err := tls.X509KeyPair(serverCert, serverKey)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	a := newAdmin(t, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{keyPair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, MinVersion: tls.VersionTLS12,
	})))
	w := runWorld(t, a, func(o *Options) { o.Security = file })
	w.close(w.accept(t))
}

// weed's loader ends the process on these; a message with the file is better.
func TestBadSecurityTomlIsAnError(t *testing.T) {
	_, _, caPEM, _ := pair(t, nil, nil)
	_, _, cert, key := pair(t, nil, nil)
	dir := t.TempDir()
	for name, content := range map[string][]byte{"ca.pem": caPEM, "c.pem": cert, "c.key": key, "junk.pem": []byte("junk")} {
		writeFile(t, dir+"/"+name, string(content))
	}
	for name, content := range map[string]string{
		"no key":          "[grpc.worker]\ncert = \"c.pem\"\n",
		"half a client":   "[grpc.worker]\nclient_cert = \"c.pem\"\n",
		"no ca":           "[grpc.worker]\ncert = \"c.pem\"\nkey = \"c.key\"\n",
		"ca is junk":      "[grpc]\nca = \"junk.pem\"\n[grpc.worker]\ncert = \"c.pem\"\nkey = \"c.key\"\n",
		"ca is not there": "[grpc]\nca = \"gone.pem\"\n[grpc.worker]\ncert = \"c.pem\"\nkey = \"c.key\"\n",
		"cert is junk":    "[grpc]\nca = \"ca.pem\"\n[grpc.worker]\ncert = \"junk.pem\"\nkey = \"c.key\"\n",
		"no toml":         "[grpc",
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, dir+"/security.toml", content)
			_, err := loadSecurity(file)
			require.Equal(t, fault.Unsupported, fault.Of(err))
			require.ErrorContains(t, err, file)
		})
	}
}
