"""A notification server for the test: writes each call of Notify to a file, as a line of JSON."""
import json
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME = "org.freedesktop.Notifications"


class Server(dbus.service.Object):
    @dbus.service.method(NAME, in_signature="susssasa{sv}i", out_signature="u")
    def Notify(self, app, replaces, icon, title, body, actions, hints, timeout):
        with open(sys.argv[1], "a") as out:
            out.write(json.dumps({"app": app, "title": title, "body": body}) + "\n")
        return dbus.UInt32(1)

    @dbus.service.method(NAME, in_signature="", out_signature="as")
    def GetCapabilities(self):
        return ["body", "body-markup"]

    @dbus.service.method(NAME, in_signature="", out_signature="ssss")
    def GetServerInformation(self):
        return ("stub", "eke", "1", "1.2")


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
name = dbus.service.BusName(NAME, bus)
Server(bus, "/org/freedesktop/Notifications")
open(sys.argv[1], "a").close()
GLib.MainLoop().run()
