package main

import (
	"fmt"
	"io"
	"os/exec"
	"runtime"

	"queuelab/bench/live"
	"queuelab/bench/trial"
)

type serveCmd struct {
	Listen      string `placeholder:"ADDR" default:"127.0.0.1:7070" help:"Address to serve on; port 0 takes any that is free."`
	Backends    string `placeholder:"LIST" default:"all" help:"Backends or settings to offer, by commas."`
	Open        bool   `help:"Open the page in the browser."`
	AllowRemote bool   `help:"Allow an address that other machines can reach."`
	brokerFlags `embed:""`
}

func (serveCmd) Help() string {
	return `Serves the live lab: choose a scenario and up to six queues, watch the messages of real
buyers go through real brokers, and strike them. Ctrl-C ends it, with all that it started.

Examples:
  queuelab serve --open
  queuelab serve --backends redis-list,redis-streams,kafka
  queuelab serve --listen 127.0.0.1:0`
}

func (c serveCmd) Run(e *env) error {
	settings, err := trial.SelectSettings(c.Backends)
	if err != nil {
		return usage(e, err)
	}
	s, err := live.New(live.Options{Settings: settings, External: c.external(), Version: commit(), Log: e.stderr})
	if err != nil {
		return err
	}
	if c.AllowRemote {
		fmt.Fprintln(e.stderr, "queuelab: warning: whoever can reach this address and has its token can kill the processes of the lab")
	}
	return s.Serve(e.ctx, c.Listen, c.AllowRemote, func(url string) {
		fmt.Fprintf(e.stdout, "The live lab: %s\nCtrl-C ends it.\n", url)
		if c.Open {
			openBrowser(e.stderr, url)
		}
	})
}

// openBrowser tells the desktop to open a page. Where there is none, people open
// it by hand.
func openBrowser(stderr io.Writer, url string) {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(stderr, "queuelab: no browser could be opened (%v): open the address by hand\n", err)
		return
	}
	go func() { _ = cmd.Wait() }() // how a browser ends is its own matter
}
