package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"queuelab/app/door"
	"queuelab/app/sale"
	"queuelab/app/store"
)

// operatorCmd is seckill operator.
type operatorCmd struct {
	Add    operatorAdd    `cmd:"" help:"Make an operator's account, or give one another password."`
	Remove operatorRemove `cmd:"" help:"Take an operator's account away."`
}

// passwordEnv is where a new operator's password may come from. It is no flag:
// all processes of a machine can read command lines.
const passwordEnv = "SECKILL_OPERATOR_PASSWORD"

// operatorAdd is seckill operator add.
type operatorAdd struct {
	Name string `arg:"" help:"The operator's name."`
}

// Help is what kong shows beneath the flags.
func (operatorAdd) Help() string {
	return `The password comes from the environment (SECKILL_OPERATOR_PASSWORD), or else from standard input: asked for at a terminal, or its first line. A buyer's account of that name becomes an operator's. Tokens that were handed out to that name before are refused within 5 seconds, by every instance that the database answers.

Examples:

  seckill operator add ann --db postgres://shop@127.0.0.1/shop

  seckill operator add ann --db sqlite:seckill.db < password.txt`
}

// Validate is called by kong.
func (o *operatorAdd) Validate() error {
	if o.Name == "" {
		return nil // not asked for
	}
	return sale.CheckUser(o.Name)
}

func (o *operatorAdd) run(ctx context.Context, f *flags, stdin io.Reader, stdout, stderr io.Writer) error {
	password, err := readPassword(stdin, stderr)
	if err != nil {
		return err
	}
	if err := door.CheckPassword(o.Name, password); err != nil {
		return err
	}
	hash, err := door.NewPasswords().Hash(ctx, password)
	if err != nil {
		return err
	}
	s, err := openAccounts(ctx, f, f.operations.Migrate != "off")
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.PutAccount(ctx, door.Account{User: o.Name, Hash: hash, Role: door.Operator, Created: time.Now()}); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s is an operator of %s\n", o.Name, store.Redact(f.DB))
	return nil
}

// openAccounts opens the database that accounts are in, beside the orders.
func openAccounts(ctx context.Context, f *flags, migrate bool) (*store.Store, error) {
	only := *f
	only.StockDB = ""
	return openStore(ctx, &only, migrate)
}

// operatorRemove is seckill operator remove.
type operatorRemove struct {
	Name string `arg:"" help:"The operator's name."`
}

// Help is what kong shows beneath the flags.
func (operatorRemove) Help() string {
	return `The account stays as a buyer's that nobody can log in to, so that nobody else takes the name; seckill operator add gives it back. Tokens of that name are refused within 5 seconds, by every instance that the database answers.

Example:

  seckill operator remove ann --db postgres://shop@127.0.0.1/shop`
}

func (o *operatorRemove) run(ctx context.Context, f *flags, stdout io.Writer) error {
	s, err := openAccounts(ctx, f, false) // who is to go is there already
	if err != nil {
		return err
	}
	defer s.Close()
	a, err := s.Account(ctx, o.Name)
	if err == nil && a.Role != door.Operator {
		err = errors.New("it is a buyer's")
	}
	if err != nil {
		return fmt.Errorf("no operator %q in %s: %w", o.Name, store.Redact(f.DB), err)
	}
	// Not deleted: what is not there is not among the accounts that changed, and its
	// tokens would be believed for a day.
	if a.Hash, err = door.NewPasswords().Hash(ctx, rand.Text()); err != nil {
		return err
	}
	a.Role = door.Buyer
	if err := s.PutAccount(ctx, a); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s is no operator of %s any more\n", o.Name, store.Redact(f.DB))
	return nil
}

func readPassword(stdin io.Reader, stderr io.Writer) (string, error) {
	if p := os.Getenv(passwordEnv); p != "" {
		return p, nil
	}
	if file, ok := stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return askPassword(file, stderr)
	}
	line, err := bufio.NewReader(io.LimitReader(stdin, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", fmt.Errorf("no password: write it to standard input, or set %s", passwordEnv)
	}
	return line, nil
}

func askPassword(terminal *os.File, stderr io.Writer) (string, error) {
	var got [2]string
	for i, prompt := range []string{"Password: ", "Again: "} {
		fmt.Fprint(stderr, prompt)
		p, err := term.ReadPassword(int(terminal.Fd()))
		fmt.Fprintln(stderr)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		got[i] = string(p)
	}
	if got[0] != got[1] {
		return "", errors.New("the two passwords differ: nothing was changed")
	}
	return got[0], nil
}
