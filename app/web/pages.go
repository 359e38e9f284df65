package web

import (
	"embed"

	"github.com/gofiber/fiber/v2"
)

//go:embed pages/storefront*
var storefrontFiles embed.FS

// storefrontRoutes are the buyers' page.
func (s *Server) storefrontRoutes(app fiber.Router) {
	app.Get("/", embedded(storefrontFiles, "pages/storefront.html"))
	for _, name := range []string{"storefront.css", "storefront.js", "storefront-net.js", "storefront-text.js", "storefront-ask.js", "storefront-memory.js"} {
		app.Get("/"+name, embedded(storefrontFiles, "pages/"+name))
	}
}
