function deleteContents(system)
end
