"""What the columns of a line say about a connection; ../README.md describes them."""

import time

NONE = "-"


def connection_settings(bootstrap, authority, identity, mechanism, user, secret):
    tls, sasl = authority != NONE, mechanism != NONE
    settings = {
        "bootstrap.servers": bootstrap,
        "security.protocol": ("SASL_" if sasl else "") + ("SSL" if tls else "PLAINTEXT"),
    }
    if tls:
        settings["ssl.ca.location"] = authority
    if identity != NONE:
        settings.update({"ssl.certificate.location": identity, "ssl.key.location": identity})
    if mechanism == "OAUTHBEARER":
        settings["oauth_cb"] = lambda _: (secret, time.time() + 3600)
    elif sasl:
        settings.update({"sasl.username": user, "sasl.password": secret})
    if sasl:
        settings["sasl.mechanism"] = mechanism
    return settings
